/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments are evaluated in their order. */
BEGIN
{
	n = 0;
	p = (char *)alloca(8);
	q = (char *)alloca(8);
	p[1] = 'x';
	bcopy(p + n++, q + n++, n++);
	printf("%d %c %d %d\n", n, q[2], n++, n++);
	exit(0);
}
/* output:
3 x 3 4

*/
