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

interface Cleared {
  context: CanvasRenderingContext2D;
  style: CSSStyleDeclaration;
  ratio: number; // its own pixels to one of the page's
}

// Of so many pixels of the page, emptied. null: nothing is to be drawn.
export function clearCanvas(canvas: HTMLCanvasElement, width: number, height: number): Cleared | null {
  const context = canvas.getContext("2d");
  if (width === 0 || context === null) {
    return null;
  }
  const style = getComputedStyle(canvas);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.fillStyle = style.getPropertyValue("--ground");
  context.fillRect(0, 0, canvas.width, canvas.height);
  return { context, style, ratio };
}
