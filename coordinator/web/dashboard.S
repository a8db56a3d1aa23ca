/* dashboard.S: coordinator/web/dashboard.html, and what charts need, as bytes of the program (dashboard.h). */
	.section .rodata
	.global dashboard_html
	.global dashboard_html_bytes
	.balign 8
dashboard_html:
	.incbin "coordinator/web/dashboard.html"
	.ascii "<style>"
	.incbin "base/chart/chart.css"
	.ascii "</style>\n<script>"
	.incbin "base/chart/chart.js"
	.ascii "</script>\n</body>\n</html>\n"
1:
	.balign 8
dashboard_html_bytes:
	.quad 1b - dashboard_html
	.section .note.GNU-stack, "", @progbits
