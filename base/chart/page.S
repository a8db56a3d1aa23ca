/* page.S: chart.css and chart.js as text of the program (chart.h). */
	.section .rodata
	.global chart_css
	.global chart_js
chart_css:
	.incbin "base/chart/chart.css"
	.byte 0
chart_js:
	.incbin "base/chart/chart.js"
	.byte 0
	.section .note.GNU-stack, "", @progbits
