/* print_documents.c: `print_documents FILE FIELD` writes each document and a byte 0xff, which no
 * text has, for judge_documents.py; or why it cannot, with status 1. */
#include "train/text/documents/documents.h"

#include <stdio.h>

static enum rv_err print(struct documents *d, struct rv_errtext *et) {
	struct document_part part;
	for (bool first = true;; first = false) {
		RV_TRY(documents_next(d, &part, et));
		if (!first && (part.begins || part.at == NULL))
			(void)putchar(0xff);
		if (part.at == NULL)
			return RV_OK;
		(void)fwrite(part.at, 1, part.n, stdout);
	}
}

int main(int argc, char **argv) {
	struct mapped_file file = {.fd = -1};
	struct documents *d = NULL;
	struct rv_errtext et = {0};
	if (argc != 3)
		return 2;
	enum rv_err e = mapped_file_open(&file, argv[1], &et);
	if (e == RV_OK)
		e = documents_open(&file, argv[2], &d, &et);
	if (e == RV_OK)
		e = print(d, &et);
	documents_close(d);
	mapped_file_close(&file);
	if (e != RV_OK)
		(void)fprintf(stderr, "%s\n", et.text);
	return e == RV_OK ? 0 : 1;
}
