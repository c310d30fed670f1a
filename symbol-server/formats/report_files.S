/* SPDX-License-Identifier: Apache-2.0 */
	.section .rodata
	.macro embed name, path
	.global report_\name
	.balign 16
report_\name:
	.incbin "\path"
	.byte 0
	.endm

	embed svg_script, "svg.js"
	embed svg_script_hash, "svg.js.hash"
	embed page, "report.html"
	embed page_script_hash, "report.js.hash"

	.section .note.GNU-stack, "", @progbits
