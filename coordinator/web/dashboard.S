/* dashboard.S: coordinator/web/dashboard.html as bytes of the program (see dashboard.h). */
	.section .rodata
	.global dashboard_html
	.global dashboard_html_bytes
	.balign 8
dashboard_html:
	.incbin "coordinator/web/dashboard.html"
1:
	.balign 8
dashboard_html_bytes:
	.quad 1b - dashboard_html
	.section .note.GNU-stack, "", @progbits
