/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations of globals, thread-local and clause-local variables. */
int a;
self int b;
this int c;
BEGIN
{
	a = 1ll << 32 | 1;
	self->b = 1ll << 32 | 2;
	this->c = 1ll << 32 | 3;
	printf("%d %d %d\n", a, self->b, this->c);
	exit(0);
}
/* output:
1 2 3

*/
