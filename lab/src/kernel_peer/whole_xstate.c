// Loaded into linux.uml in front of libc: sets a guest's floating-point registers where the host's CPU has more state than the guest's kernel
// has room for.
//
// Linux 6.1 as a guest keeps 2696 octets of a process's XSAVE area (up to AVX-512 and PKRU). It reads that much by PTRACE_GETREGSET and writes
// it back by PTRACE_SETREGSET, for which the host demands the whole area: with AMX this is 11 KB, and the answer is EFAULT. What the guest has
// no room for stays here as the process has it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

// Where the area says which components are in it, a bit for each: Intel SDM volume 1, 13.4.2 (XSTATE_BV).
#define XSTATE_BV 512
// x87, SSE, AVX, MPX, AVX-512, PT and PKRU: what lies in the guest's part of the area.
#define GUESTS_OWN 0x3ffULL

typedef long ptrace_of(int request, pid_t pid, void *at, void *data);

static ptrace_of *libc_ptrace;

// The guest's kernel runs on one thread of the host, and its stacks are small.
static char area[64 * 1024] __attribute__((aligned(64)));

// Found before the guest's kernel takes malloc over.
__attribute__((constructor)) static void find_libc_ptrace(void)
{
	libc_ptrace = (ptrace_of *)dlsym(RTLD_NEXT, "ptrace");
}

static long set_within_whole(pid_t pid, const struct iovec *part)
{
	struct iovec whole = {area, sizeof(area)};
	uint64_t there, guests;

	if (libc_ptrace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &whole) < 0)
		return -1;
	if (part->iov_len < XSTATE_BV + sizeof(guests) || part->iov_len >= whole.iov_len) {
		errno = EFAULT;
		return -1;
	}
	memcpy(&there, area + XSTATE_BV, sizeof(there));
	memcpy(area, part->iov_base, part->iov_len);
	memcpy(&guests, area + XSTATE_BV, sizeof(guests));
	guests = (guests & GUESTS_OWN) | (there & ~GUESTS_OWN);
	memcpy(area + XSTATE_BV, &guests, sizeof(guests));
	return libc_ptrace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &whole);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	va_start(rest, request);
	pid_t pid = va_arg(rest, pid_t);
	void *at = va_arg(rest, void *);
	void *data = va_arg(rest, void *);
	va_end(rest);

	long done = libc_ptrace(request, pid, at, data);
	if (done == -1 && errno == EFAULT && request == PTRACE_SETREGSET && at == (void *)NT_X86_XSTATE)
		return set_within_whole(pid, data);
	return done;
}
