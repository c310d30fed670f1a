// SPDX-License-Identifier: Apache-2.0
// Another screen or the browser's own zoom: same size in CSS pixels, other pixels. Browsers do
// not tell of every such change: who points at a canvas should see it sharp then.

export function watchDensity(changed: () => void): void {
  const now = window.matchMedia(`(resolution: ${window.devicePixelRatio}dppx)`);
  const again = () => {
    changed();
    watchDensity(changed);
  };
  now.addEventListener("change", again, { once: true });
}
