/* SPDX-License-Identifier: Apache-2.0 */
/* Only ASCII letters change. */
BEGIN
{
	printf("%s %s\n", tolower("Hello, WORLD 1!"), toupper("Hello, world 1!"));
	exit(0);
}
/* output:
hello, world 1! HELLO, WORLD 1!

*/
