export { type CodeRow, codes, type Disposition, type ErrorCode, isErrorCode } from "./codes.ts";
export {
  type ErrorBody,
  type ErrorOptions,
  ensureFlotillaError,
  errorFromBody,
  FlotillaError,
  invalidInput,
  isFlotillaError,
} from "./errors.ts";
