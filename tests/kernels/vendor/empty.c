/* empty.c: a library whose name is all that matters. */
int rivulet_fake_part(void);
int rivulet_fake_part(void) {
	return 0;
}
