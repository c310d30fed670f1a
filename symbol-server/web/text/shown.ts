// SPDX-License-Identifier: Apache-2.0
// Text of strangers as it may stand beside other text. What would turn the direction of its neighbours
// around, hide letters or move the cursor is shown as a sign that names it. Line ends and tabs stay: in a
// line of the page they are blanks. Pure.

// The code points are those of Unicode's Bidi_Control and Default_Ignorable_Code_Point that no script
// needs (U+200C and U+200D are left), its line and paragraph separators, and Cc.
const MARKS =
  // eslint-disable-next-line no-control-regex, no-misleading-character-class
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

function sign(mark: string): string {
  return `⟨U+${(mark.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

export function shown(text: string): string {
  return text.replace(MARKS, sign);
}
