// SPDX-License-Identifier: Apache-2.0
// Few rules, each for a kind of mistake: lost promises, comparisons that lie, types that say nothing,
// data that could become markup. Run from the root of the repository: make check-web.

import js from "@eslint/js";
import tseslint from "typescript-eslint";

const MARKUP = "Names are hostile text: textContent, or el() of dom.ts.";
const NODE = ["console", "process", "Buffer", "URL", "URLSearchParams", "fetch", "setTimeout", "clearTimeout", "performance"];
const PAGE = ["document", "location", "HTMLSelectElement", "window", "requestAnimationFrame", "addEventListener", "MutationObserver", "PerformanceObserver", "MessageChannel"]; // what tests run inside the page

export default tseslint.config(
  { ignores: ["**/node_modules/**", "build/**"] },
  {
    files: ["symbol-server/web/**/*.ts"],
    extends: [js.configs.recommended, tseslint.configs.recommendedTypeChecked],
    // A host with CI=true in its environment would get types of each file as it was read first.
    languageOptions: { parserOptions: { projectService: true, disallowAutomaticSingleRunInference: true } },
    rules: {
      eqeqeq: "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/explicit-module-boundary-types": "error",
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "max-lines": ["error", { max: 400, skipBlankLines: true }],
      complexity: ["error", 20],
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: MARKUP },
        { property: "outerHTML", message: MARKUP },
        { property: "insertAdjacentHTML", message: MARKUP },
        { object: "document", property: "write", message: MARKUP },
      ],
      "no-restricted-globals": ["error", "alert", "confirm", "prompt", "localStorage", "sessionStorage"],
    },
  },
  // What is chosen for a screen and not for a picture is no part of the address.
  { files: ["symbol-server/web/shell/theme.ts"], rules: { "no-restricted-globals": "off" } },
  {
    files: ["symbol-server/web/*.mjs", "tests/**/*.mjs"],
    extends: [js.configs.recommended],
    languageOptions: { globals: Object.fromEntries([...NODE, ...PAGE].map((name) => [name, "readonly"])) },
    rules: { eqeqeq: "error" },
  },
);
