/* page.S: worker/local/page.*, and what charts need, as bytes of the program (local_page.h). */
	.section .rodata
	.global local_page_html
	.global local_page_html_bytes
	.global local_page_css
	.global local_page_css_bytes
	.global local_page_js
	.global local_page_js_bytes
	.balign 8
local_page_html:
	.incbin "worker/local/page.html"
1:
	.balign 8
local_page_css:
	.incbin "worker/local/page.css"
	.incbin "base/chart/chart.css"
2:
	.balign 8
local_page_js:
	.incbin "worker/local/page.js"
	.incbin "base/chart/chart.js"
3:
	.balign 8
local_page_html_bytes:
	.quad 1b - local_page_html
local_page_css_bytes:
	.quad 2b - local_page_css
local_page_js_bytes:
	.quad 3b - local_page_js
	.section .note.GNU-stack, "", @progbits
