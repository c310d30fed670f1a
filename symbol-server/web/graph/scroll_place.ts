// SPDX-License-Identifier: Apache-2.0
// How far an element is scrolled, known without asking the browser: between changes of the page an answer
// would cost it a layout.

export class ScrollPlace {
  top = 0;
  private tall = 0; // of what is scrolled
  private height = 0; // of the part in sight

  constructor(
    private readonly scroller: HTMLElement,
    private readonly content: HTMLElement,
  ) {}

  // As far as it can be scrolled.
  get bottom(): number {
    return Math.max(0, this.tall - this.height);
  }

  setTall(tall: number, height: number): void {
    this.height = height;
    if (tall !== this.tall) {
      this.tall = tall;
      this.content.style.height = `${tall}px`;
      this.top = Math.min(this.top, this.bottom);
    }
  }

  // After a layout. Nothing scrolls while it is hidden.
  setHeight(height: number): void {
    this.height = height;
    this.follow();
  }

  to(top: number): void {
    this.top = Math.max(0, Math.min(top, this.bottom));
    this.scroller.scrollTop = this.top;
  }

  // Where the user has scrolled to: whether that is elsewhere.
  follow(): boolean {
    const before = this.top;
    this.top = this.scroller.scrollTop;
    return this.top !== before;
  }
}
