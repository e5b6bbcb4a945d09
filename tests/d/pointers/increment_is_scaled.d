/* SPDX-License-Identifier: Apache-2.0 */
/* ++ and += of pointers. */
BEGIN
{
	p = (short *)100;
	p++;
	printf("%d ", (long)p);
	p += 3;
	printf("%d ", (long)p);
	p--;
	printf("%d\n", (long)p);
	exit(0);
}
/* output:
102 108 106

*/
