/* SPDX-License-Identifier: Apache-2.0 */
/* this-> variables have a limit, whatever their sum is modulo 4 GB. */
/* flags: -q -xerrtags -e */
/* status: 1 */
/* stderr: [D_NOMEM] this-> variables and string literals need more than a clause may have */
this char a[1 << 30];
this char b[1 << 30];
this char c[1 << 30];
this char d[1 << 30];
BEGIN
{
	this->a[0] = 1;
	this->d[0] = 1;
	exit(0);
}
