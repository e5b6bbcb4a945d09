/* SPDX-License-Identifier: Apache-2.0 */
/* p = a is p = &a[0]. */
int a[5];
int *p;
this int l[3];
this int *q;
BEGIN
{
	a[3] = 7;
	p = a;
	this->l[2] = 4;
	this->q = this->l;
	this->q[1] = 6;
	printf("%d %d %d %d\n", p[3], *(a + 3), this->q[2], this->l[1]);
	exit(0);
}
/* output:
7 7 4 6

*/
