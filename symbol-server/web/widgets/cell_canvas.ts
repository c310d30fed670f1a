// SPDX-License-Identifier: Apache-2.0
// A canvas as wide as what it is in, for cells that are shaded.

// Calls again whenever the element gets another width.
export function onWidth(element: HTMLElement, changed: (width: number) => void): void {
  let width = 0;
  new ResizeObserver(() => {
    if (element.clientWidth !== width) {
      width = element.clientWidth;
      changed(width);
    }
  }).observe(element);
}

// Of so many pixels of the page, emptied; ratio: its own pixels to one of the page's.
export function clearCanvas(canvas: HTMLCanvasElement, width: number, height: number, style: CSSStyleDeclaration): { context: CanvasRenderingContext2D; ratio: number } | null {
  const context = canvas.getContext("2d");
  if (width === 0 || context === null) {
    return null;
  }
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.fillStyle = style.getPropertyValue("--ground");
  context.fillRect(0, 0, canvas.width, canvas.height);
  return { context, ratio };
}
