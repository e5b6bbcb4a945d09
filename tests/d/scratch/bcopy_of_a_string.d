/* SPDX-License-Identifier: Apache-2.0 */
/* bcopy() takes a string for its source. */
BEGIN
{
	p = (char *)alloca(6);
	s = "hello";
	bcopy(s, p, 6);
	printf("%s %s\n", stringof(p), (string)p);
	exit(0);
}
/* output:
hello hello

*/
