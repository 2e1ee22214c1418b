/** The package brings no types. Every value is a text. */
declare module 'parse-prometheus-text-format' {
  interface ParsedSample {
    readonly labels?: Readonly<Record<string, string>>;
    readonly value: string;
  }

  interface ParsedFamily {
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly metrics: readonly ParsedSample[];
  }

  export default function parse(text: string): ParsedFamily[];
}
