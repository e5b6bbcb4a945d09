/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help: waits for locks: which, for how long, from where, and who held them
 * needs: root
 * every: 1s
 * parameter: kind mutex|all mutex mutex, or all: whatever a thread waits for in futex(2)
 * parameter: take number 10 at most so many stacks
 *
 * For which locks do threads sleep, how long, where do they ask for them, and which thread held the
 * lock as they began to wait? Locks are those of the C library (pthread_mutex_t, and what C++, glib
 * and others build on them), and futexes of other libraries with --kind all, condition variables
 * among them, in which idle threads wait. The owner is known of locks of the C library, as a
 * thread's id: ps -L -p PID has its name; 0 is not known. A lock that is taken without sleeping
 * makes no system call, and is not here.
 *
 *	clew locks -p PID
 *	clew locks -n mariadbd --for 10s
 *	clew locks -c './app' --kind all --json
 */
#pragma D option quiet
#pragma D option aggsortrev
#pragma D option dynvarsize=8m

/*
 * The low seven bits are the operation: 0 FUTEX_WAIT, 6 FUTEX_LOCK_PI, 9 FUTEX_WAIT_BITSET. Mutexes
 * of the C library wait for a change of 2, "locked, and somebody waits" (nptl/lowlevellock.h).
 */
syscall::futex:entry
/(${traced}) && ((arg1 & 0x7f) == 6 || ((arg1 & 0x7f) == 0 && (int)arg2 == 2) ||
    ("${kind}" == "all" && ((arg1 & 0x7f) == 0 || (arg1 & 0x7f) == 9)))/
{
	self->lock = arg0;
	self->since = timestamp;
	self->owner = 0;
}

/* struct __pthread_mutex_s: int lock, count, owner, nusers, kind. Others have other words there. */
syscall::futex:entry
/self->since && (arg1 & 0x7f) == 0 && (int)arg2 == 2/
{
	this->words = (uint32_t *)copyin(arg0, 20);
	self->owner = this->words[2] < 4194304 && this->words[3] > 0 && this->words[3] < 65536 &&
	    (this->words[4] & ~0x3ff) == 0 ? this->words[2] : 0;
}

syscall::futex:return
/self->since/
{
	@waits[execname, self->owner, usym(self->lock), ustack(16)] = count();
	@nanoseconds[execname, self->owner, usym(self->lock), ustack(16)] =
	    sum(timestamp - self->since);
	self->since = 0;
}
