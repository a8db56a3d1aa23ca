/* report_page.S: report_page.css as text of the program. */
	.section .rodata
	.global report_css
report_css:
	.incbin "lab/report/report_page.css"
	.byte 0
	.section .note.GNU-stack, "", @progbits
