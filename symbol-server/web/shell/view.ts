// SPDX-License-Identifier: Apache-2.0
// What a view of the page is, and what the shell around it offers. A view lives in a room
// of its own in views/ and is registered in views.ts; it makes its own elements and asks the server itself.

import type { Child } from "../widgets/dom";
import type { Menu } from "../widgets/menu";
import type { State } from "./state";

// One key of a view: the "?" dialog lists it as it is bound.
export interface KeyBinding {
  keys: string[]; // KeyboardEvent.key, any of them
  does: string; // what a reader of the dialog sees
  run(): void;
  // Arrows and Enter belong to a focused button, link or table; such a key then does nothing here.
  yields?: boolean;
}

export interface View {
  readonly element: HTMLElement; // in <main>; hidden while another view is shown
  readonly asked: readonly (keyof State)[]; // of the state: a change of these asks the server again
  // Asks the server and draws. What it throws is shown as a sentence with a retry; once the signal is
  // aborted it changes nothing any more.
  load(state: State, signal: AbortSignal): Promise<void>;
  // Every change of the state, before load() where both are due: what is only drawn otherwise.
  // before: what was there before; null: the view has just become the one that is shown.
  adjust?(state: State, before: State | null): void;
  isHeld?(): boolean; // in somebody's hand: not to be asked again by itself now
  leave?(): void; // another view is shown from now on
  setTheme?(dark: boolean): void;
  readonly keys?: KeyBinding[];
}

export interface Shell {
  readonly state: State;
  readonly status: HTMLElement; // the line under the bar, emptied when the view changes
  readonly menu: Menu; // the only one: of a frame, of an entry of a legend
  // A choice of the user: into the address and on the screen. remember: Back undoes it.
  change(changed: Partial<State>, remember?: boolean): void;
  link(changed: Partial<State>): string; // the address of that choice, for <a href>
  reload(): void; // asks the server again
  isBusy(): boolean;
  // The view's question was answered about this time, unix milliseconds: all its further ones are about the same, until
  // it is asked again.
  pin(from: number, until: number): void;
  pinned(): State; // with those times
  refine(): void; // asks the server again about the same time
  pictured(): void; // the picture is there, though more may be on its way: a failure stands above it
  blank(...children: Child[]): void; // instead of a picture, until the view is shown again
  notice(text: string): void; // for a moment, also to screen readers
  speak(text: string): void; // to screen readers only
}
