/* Completions: what each script holds. tests/package/completions.sh runs them in their shells. */
#include "base/completion.h"

#include "tests/base/demo_options.h"
#include "tests/common/check.h"

#include <stdlib.h>
#include <string.h>

static enum rv_err run(void *opts, const struct rv_args *args, struct rv_errtext *et) {
	(void)opts;
	(void)args;
	(void)et;
	return RV_OK;
}

static const struct rv_preset presets[] = {
	{"short", "few rounds", "rounds = 3\n"}, {"long", "many", "rounds = 9\n"}, {.name = NULL}};
static const struct rv_command commands[] = {
	{.name = "serve",
	 .synopsis = "",
	 .help = "Serves [it]: now. Later.",
	 .options = demo_options,
	 .presets = presets,
	 .run = run},
	{.name = "status", .synopsis = "DIR", .help = "Shows the run's state.", .run = run},
	{.run = NULL},
};
static const struct rv_program many = {"a-prog", "A program.", commands, NULL, false};
static const struct rv_command single[] = {{.synopsis = "LINK", .help = "", .options = demo_options, .run = run},
										   {.run = NULL}};
static const struct rv_program one = {"tool", "A tool.", single, NULL, false};

static void expect(const struct rv_program *p, const char *shell, const char *part) {
	char *text = NULL;
	size_t n;
	struct rv_errtext et = {0};
	FILE *f = open_memstream(&text, &n);
	assert_non_null(f);
	assert_int_equal(rv_completion_print(p, shell, f, &et), RV_OK);
	assert_int_equal(fclose(f), 0);
	if (!strstr(text, part))
		fail_msg("%s for %s: not found:\n%s\nin:\n%s", p->name, shell, part, text);
	free(text);
}

static void bash(void **state) {
	(void)state;
	expect(&many, "bash", "\t\tserve | status)\n");
	expect(&many, "bash", "\tserve/--late) words='keep discard' ;;\n");
	expect(&many, "bash", "\tserve/--preset) words='short long' ;;\n");
	expect(&many, "bash", "\tserve/--rounds) return ;;\n");
	expect(&many, "bash", "\tserve/--link) files=yes ;;\n");
	expect(&many, "bash", "\tstatus) words=' --config --check --help --version' ;;\n");
	expect(&many, "bash", "words+=' serve status --help --version'\n");
	expect(&one, "bash", "\t/--late) words='keep discard' ;;\n");
	expect(&one, "bash", "\t'') words=' --resume --no-resume --rounds");
	expect(&one, "bash", "complete -F _tool tool\n");
}

static void zsh(void **state) {
	(void)state;
	expect(&many, "zsh", "#compdef a-prog\n");
	expect(&many, "zsh", "'--late[What a late worker does]:late:(keep discard)' \\\n");
	expect(&many, "zsh", "'--no-resume[Not\\: Go on where the last run stopped]' \\\n");
	expect(&many, "zsh", "'--rounds[Outer steps]:rounds: ' \\\n");
	expect(&many, "zsh", "'--link[The invite link]:link:_files' \\\n");
	expect(&many, "zsh", "\t\t'serve:Serves \\[it\\]\\: now'\n\t\t'status:Shows the run'\\''s state'\n");
	expect(&one, "zsh", "_tool() {\n\t_tool-\n}\n");
}

static void fish(void **state) {
	(void)state;
	expect(&many, "fish", "complete -c a-prog -n __fish_use_subcommand -f -a status -d 'Shows the run\\'s state'\n");
	expect(&many, "fish",
		   "complete -c a-prog -n '__fish_seen_subcommand_from serve' -l late -x -a 'keep discard' -d 'What a late "
		   "worker does'\n");
	expect(&one, "fish", "complete -c tool -l link -r -F -d 'The invite link'\n");
	expect(&one, "fish", "complete -c tool -l no-resume -d 'Not: Go on");
	expect(&one, "fish", "complete -c tool -l rounds -x -d 'Outer steps'\n");
}

int main(void) {
	const struct CMUnitTest tests[] = {cmocka_unit_test(bash), cmocka_unit_test(zsh), cmocka_unit_test(fish)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
