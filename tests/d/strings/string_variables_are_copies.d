/* SPDX-License-Identifier: Apache-2.0 */
/* Assigning a string copies it. */
BEGIN
{
	a = "first";
	b = a;
	a = "second";
	printf("%s %s\n", a, b);
	exit(0);
}
/* output:
second first

*/
