/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help: opens that succeed and fail, and bytes by file
 * needs: root
 * every: 1s
 * parameter: path text - only opens of paths with this in them
 * parameter: take number 15 at most so many opens
 *
 * Which files do programs open, which opens fail, and from and to which files do the bytes go?
 * Paths of opens are as the program gave them; files that are read and written are named by their
 * descriptors. Connections are no files: clew net has them.
 *
 *	clew files
 *	clew files -n nginx --path .html --for 10s
 *	clew files -c 'sort big.txt' --json
 */
#pragma D option quiet
#pragma D option strsize=192
#pragma D option aggsortrev

syscall::open:entry
/${traced}/
{
	self->path = arg0;
}

syscall::openat:entry, syscall::openat2:entry
/${traced}/
{
	self->path = arg1;
}

/* At the entry a path may lie in a page that nobody has touched. */
syscall::open:return, syscall::openat:return, syscall::openat2:return
/self->path && strstr(copyinstr(self->path), "${path}") != NULL/
{
	@opens[execname, errno, copyinstr(self->path)] = count();
}

syscall::open:return, syscall::openat:return, syscall::openat2:return
{
	self->path = 0;
}

syscall::read:entry, syscall::pread64:entry, syscall::readv:entry
/${traced}/
{
	self->descriptor = arg0 + 1;
	self->reads = 1;
}

syscall::write:entry, syscall::pwrite64:entry, syscall::writev:entry
/${traced}/
{
	self->descriptor = arg0 + 1;
	self->reads = 0;
}

syscall::read:return, syscall::pread64:return, syscall::readv:return,
syscall::write:return, syscall::pwrite64:return, syscall::writev:return
/self->descriptor && errno == 0 && fds[self->descriptor - 1].fi_pathname[0] == '/'/
{
	@bytes[execname, fds[self->descriptor - 1].fi_pathname] = sum(arg1);
	@read[execname, fds[self->descriptor - 1].fi_pathname] = sum(self->reads ? arg1 : 0);
	@written[execname, fds[self->descriptor - 1].fi_pathname] = sum(self->reads ? 0 : arg1);
}

syscall::read:return, syscall::pread64:return, syscall::readv:return,
syscall::write:return, syscall::pwrite64:return, syscall::writev:return
{
	self->descriptor = 0;
}
