/* SPDX-License-Identifier: Apache-2.0 */
/* copyout() writes to the memory of the process. */
/* flags: -q -w -c "/bin/echo hello" */
/* unless: this kernel lets no program write */
syscall::write:entry
/pid == $target && arg0 == 1/
{
	this->p = (char *)alloca(2);
	this->p[0] = 'J';
	copyout(this->p, arg1, 1);
}
/* output:
Jello

*/
