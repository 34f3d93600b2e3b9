// What a person needs to know once the fleet is ready.
export interface Started {
  readonly home: string;
  readonly urls: readonly string[];
  readonly ready_ms: number;
  readonly model: string;
  readonly is_split: boolean;
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
}

export function bannerOf(started: Started): string {
  const [url] = started.urls;
  const seconds = (started.ready_ms / 1000).toFixed(1);
  if (url === undefined) return `started in ${seconds} s, without a front door (no harness)`;
  return [
    `ready in ${seconds} s`,
    "",
    `  console   ${url}/`,
    `  model     ${modelLine(started.model)}`,
    ...(started.is_split ? [`  processes ${started.processes.length}, pid files in ${started.home}/run`] : []),
    "",
    "  try       npx flotilla chat",
    "  or        curl -s -H 'content-type: application/json' -d '{\"text\": \"Where is order 42?\"}' \\",
    `              ${url}/v1/sessions/hello/turns && curl -sN -m 5 ${url}/v1/sessions/hello/events`,
    "",
  ].join("\n");
}

function modelLine(model: string): string {
  const isDemo = model.startsWith("scripted/");
  return isDemo ? `${model} (set ANTHROPIC_API_KEY or OPENAI_API_KEY for a real one)` : model;
}
