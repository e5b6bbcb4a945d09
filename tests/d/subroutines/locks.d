/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex of this process that nobody holds. */
BEGIN
{
	this->m = &curthread->signal->cred_guard_mutex;
	printf("%d %d %d %d\n", mutex_owned(this->m), mutex_owner(this->m) == NULL,
	    mutex_type_adaptive(this->m), mutex_type_spin(this->m));
	this->l = alloca(64);
	*(int *)this->l = 0x200;
	printf("%d %d %d\n", rw_read_held(this->l), rw_write_held(this->l), rw_iswriter(this->l));
	*(int *)this->l = 0xff;
	printf("%d %d %d\n", rw_read_held(this->l), rw_write_held(this->l), rw_iswriter(this->l));
	exit(0);
}
/* output:
0 1 1 0
1 0 0
0 1 1

*/
