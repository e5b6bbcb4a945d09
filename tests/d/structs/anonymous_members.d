/* SPDX-License-Identifier: Apache-2.0 */
/* Members of an anonymous union count as the outer's. */
struct s { int kind; union { int number; char letter; }; };
struct s v;
BEGIN
{
	v.number = 0x61;
	printf("%c %d\n", v.letter, offsetof(struct s, letter));
	exit(0);
}
/* output:
a 4

*/
