/* SPDX-License-Identifier: Apache-2.0 */
/* stringof makes a string of a pointer to char. */
BEGIN
{
	p = (char *)alloca(8);
	p[0] = 'o';
	p[1] = 'k';
	p[2] = 0;
	printf("%s\n", stringof(p));
	exit(0);
}
/* output:
ok

*/
