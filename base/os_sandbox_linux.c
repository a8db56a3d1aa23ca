/* os_sandbox_linux.c: Landlock (landlock(7)) for files, and a seccomp filter (seccomp(2)) for
 * system calls. Landlock's numbers stand here: Debian 11, on which portable programs are built, has
 * no header of it. */
#include "base/os_sandbox.h"

#include "base/assert.h"
#include "base/os_program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- files ---- */

enum {
	CREATE_RULESET = 444, /* the same numbers on all processors */
	ADD_RULE = 445,
	RESTRICT_SELF = 446,
	CREATE_RULESET_VERSION = 1,
	RULE_PATH_BENEATH = 1,
	LEAST_ABI = 2 /* Linux 5.19; 1 refuses all renames from one directory to another */
};

enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_CHAR = 1 << 6,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_MAKE_SOCK = 1 << 9,
	FS_MAKE_FIFO = 1 << 10,
	FS_MAKE_BLOCK = 1 << 11,
	FS_MAKE_SYM = 1 << 12,
	FS_REFER = 1 << 13,
	FS_TRUNCATE = 1 << 14 /* from ABI 3 on */
};

enum {
	OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE,
	READING = FS_READ_FILE | FS_READ_DIR,
	WRITING = FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK | FS_MAKE_FIFO |
			  FS_MAKE_SYM | FS_REFER | FS_TRUNCATE,
	ALL = READING | WRITING | FS_EXECUTE | FS_MAKE_CHAR | FS_MAKE_BLOCK
};

struct ruleset_attr {
	uint64_t handled_access_fs;
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

static const struct os_sandbox_path of_the_system[] = {
	{"/usr", OS_SANDBOX_READ | OS_SANDBOX_EXECUTE},
	{"/bin", OS_SANDBOX_READ | OS_SANDBOX_EXECUTE},
	{"/sbin", OS_SANDBOX_READ | OS_SANDBOX_EXECUTE},
	{"/lib", OS_SANDBOX_READ | OS_SANDBOX_EXECUTE},
	{"/lib64", OS_SANDBOX_READ | OS_SANDBOX_EXECUTE},
	{"/opt", OS_SANDBOX_READ | OS_SANDBOX_EXECUTE},
	{"/nix/store", OS_SANDBOX_READ | OS_SANDBOX_EXECUTE},
	{"/etc", OS_SANDBOX_READ},
	{"/run", OS_SANDBOX_READ}, /* names of hosts, the session's bus */
	{"/var/lib/ca-certificates", OS_SANDBOX_READ},
	{"/proc", OS_SANDBOX_READ},
	{"/proc/self/task", OS_SANDBOX_READ | OS_SANDBOX_WRITE}, /* names of threads */
	{"/sys", OS_SANDBOX_READ},
	{"/dev", OS_SANDBOX_READ | OS_SANDBOX_WRITE}, /* GPUs; shared memory */
};

static uint64_t rights_of(unsigned access) {
	return (access & OS_SANDBOX_READ ? (uint64_t)READING : 0) | (access & OS_SANDBOX_WRITE ? (uint64_t)WRITING : 0) |
		   (access & OS_SANDBOX_EXECUTE ? (uint64_t)FS_EXECUTE : 0);
}

/* Adds a path to the rules, of which the system knows `handled`. */
static enum rv_err allow(int rules, uint64_t handled, const struct os_sandbox_path *p, struct rv_errtext *et) {
	struct path_beneath_attr a = {.allowed_access = rights_of(p->access) & handled};
	struct stat st;
	if (p->path[0] == '\0')
		return RV_OK;
	a.parent_fd = open(p->path, O_PATH | O_CLOEXEC);
	if (a.parent_fd < 0)
		return RV_OK; /* it is not there, or not for this user */
	if (fstat(a.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		a.allowed_access &= OF_FILES;
	const long failed = syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &a, 0);
	const int why = errno;
	(void)close(a.parent_fd);
	return failed ? rv_fail_errno(et, why, "sandbox: %s", p->path) : RV_OK;
}

/* Allows the directory of this program and those beside it: a tarball has its loader and libraries
 * in DIR/lib, next to DIR/bin. */
static enum rv_err allow_program(int rules, uint64_t handled, struct rv_errtext *et) {
	static const char *const beside[] = {"", "/../lib", "/../libexec", "/../bin"};
	char program[PATH_MAX], path[PATH_MAX + 16];
	if (!os_program_path(program))
		return RV_OK;
	char *slash = strrchr(program, '/');
	RV_ASSERT(slash != NULL);
	*slash = '\0';
	for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
		(void)snprintf(path, sizeof path, "%s%s", program, beside[i]);
		RV_TRY(allow(rules, handled, &(struct os_sandbox_path){path, OS_SANDBOX_READ | OS_SANDBOX_EXECUTE}, et));
	}
	return RV_OK;
}

static enum rv_err allow_all(int rules, uint64_t handled, const struct os_sandbox_needs *needs, struct rv_errtext *et) {
	for (size_t i = 0; i < sizeof of_the_system / sizeof of_the_system[0]; i++)
		RV_TRY(allow(rules, handled, &of_the_system[i], et));
	for (int i = 0; i < needs->n; i++)
		RV_TRY(allow(rules, handled, &needs->paths[i], et));
	return allow_program(rules, handled, et);
}

static enum rv_err enter_files(const struct os_sandbox_needs *needs, struct os_sandbox *out, struct rv_errtext *et) {
	const long abi = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
	const struct ruleset_attr attr = {.handled_access_fs = abi >= 3 ? ALL : ALL & ~FS_TRUNCATE};
	if (abi < LEAST_ABI) {
		(void)rv_fail(&out->why_not, RV_E_UNSUPPORTED,
					  "this system's Landlock is %s: files are not kept from this program (Linux 5.19 and newer)",
					  abi < 0 ? "missing or off" : "too old");
		return RV_OK;
	}
	const int rules = (int)syscall(CREATE_RULESET, &attr, sizeof attr, 0);
	if (rules < 0)
		return rv_fail_errno(et, errno, "sandbox: no rules for files");
	enum rv_err e = allow_all(rules, attr.handled_access_fs, needs, et);
	if (e == RV_OK && syscall(RESTRICT_SELF, rules, 0) != 0)
		e = rv_fail_errno(et, errno, "sandbox: files");
	(void)close(rules);
	out->files = e == RV_OK;
	return e;
}

/* ---- system calls ---- */

#ifdef __x86_64__
#define THIS_ARCH AUDIT_ARCH_X86_64
enum { FOREIGN_CALLS = 0x40000000 }; /* of x32: from this number on */
#else
#define THIS_ARCH AUDIT_ARCH_AARCH64
enum { FOREIGN_CALLS = 0 };
#endif

/* Calls that neither these programs nor their libraries make. */
static const int refused[] = {
	SYS_ptrace, SYS_process_vm_writev, SYS_kcmp, SYS_perf_event_open, SYS_bpf, SYS_userfaultfd, SYS_keyctl, SYS_add_key,
	SYS_request_key, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_init_module,
	SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl,
	SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_sethostname, SYS_setdomainname,
	SYS_syslog, SYS_personality, SYS_fanotify_init, SYS_open_by_handle_at, SYS_vhangup,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
#ifdef __x86_64__
	SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_ustat, SYS_sysfs,
#endif
	/* These numbers are the same on all processors. */
	425, /* io_uring_setup */
	426, /* io_uring_enter */
	427, /* io_uring_register */
	428, /* open_tree */
	429, /* move_mount */
	430, /* fsopen */
	431, /* fsconfig */
	432, /* fsmount */
	433, /* fspick */
	438, /* pidfd_getfd */
	442, /* mount_setattr */
};

enum { CLONE3 = 435, CODE_MAX = 2 * (sizeof refused / sizeof refused[0]) + 64 };

struct program {
	struct sock_filter code[CODE_MAX];
	unsigned short n;
};

static void put(struct program *p, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false) {
	RV_ASSERT(p->n < CODE_MAX);
	p->code[p->n++] = (struct sock_filter){code, if_true, if_false, k};
}

static void load(struct program *p, size_t offset) {
	put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void load_call(struct program *p) {
	load(p, offsetof(struct seccomp_data, nr));
}

/* Loads the low half of an argument, on which the system calls below depend alone. */
static void load_argument(struct program *p, size_t i) {
	load(p, offsetof(struct seccomp_data, args) + i * sizeof(uint64_t));
}

static void answer(struct program *p, int error) {
	put(p, BPF_RET | BPF_K, error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_ALLOW, 0, 0);
}

/* Answers with `error` if what was loaded equals k. */
static void answer_if(struct program *p, uint32_t k, int error) {
	put(p, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
	answer(p, error);
}

/* Makes new namespaces impossible: clone's flags; clone3's cannot be read here, and glibc goes on
 * with clone if it is missing. */
static void refuse_namespaces(struct program *p) {
	const uint32_t flags =
		CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
	answer_if(p, CLONE3, ENOSYS);
	put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
	load_argument(p, 0);
	put(p, BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1);
	answer(p, EPERM);
	load_call(p);
}

static void refuse_sockets(struct program *p) {
	static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
	enum { N = sizeof families / sizeof families[0] };
	put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, N + 3);
	load_argument(p, 0);
	for (uint8_t i = 0; i < N; i++)
		put(p, BPF_JMP | BPF_JEQ | BPF_K, families[i], (uint8_t)(N - i), 0);
	answer(p, EAFNOSUPPORT);
	load_call(p);
}

/* Refuses to type into the terminal that started the program. */
static void refuse_typing(struct program *p) {
	enum { OF_THE_CONSOLE = 0x541c }; /* TIOCLINUX */
	put(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 6);
	load_argument(p, 1);
	answer_if(p, TIOCSTI, EPERM);
	answer_if(p, OF_THE_CONSOLE, EPERM);
	load_call(p);
}

static void write_filter(struct program *p, bool programs) {
	load(p, offsetof(struct seccomp_data, arch));
	put(p, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
	answer(p, ENOSYS);
	load_call(p);
	if (FOREIGN_CALLS) {
		put(p, BPF_JMP | BPF_JGE | BPF_K, FOREIGN_CALLS, 0, 1);
		answer(p, ENOSYS);
	}
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		answer_if(p, (uint32_t)refused[i], EPERM);
	if (!programs) {
		answer_if(p, SYS_execve, EPERM);
		answer_if(p, SYS_execveat, EPERM);
	}
	refuse_namespaces(p);
	refuse_sockets(p);
	refuse_typing(p);
	answer(p, 0);
}

static enum rv_err enter_calls(bool programs, struct os_sandbox *out, struct rv_errtext *et) {
	struct program p = {.n = 0};
	write_filter(&p, programs);
	const struct sock_fprog filter = {.len = p.n, .filter = p.code};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0) {
		out->calls = true;
		return RV_OK;
	}
	if (errno != ENOSYS && errno != EINVAL && errno != EPERM) /* EPERM: of another sandbox around this one */
		return rv_fail_errno(et, errno, "sandbox: system calls");
	if (out->why_not.text[0] == '\0')
		(void)rv_fail(&out->why_not, RV_E_UNSUPPORTED, "this system has no seccomp filters, or allows none");
	return RV_OK;
}

enum rv_err os_sandbox_enter(const struct os_sandbox_needs *needs, struct os_sandbox *out, struct rv_errtext *et) {
	*out = (struct os_sandbox){.files = false};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return rv_fail_errno(et, errno, "sandbox: no_new_privs");
	RV_TRY(enter_files(needs, out, et));
	return enter_calls(needs->programs, out, et);
}
