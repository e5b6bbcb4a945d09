/* SPDX-License-Identifier: Apache-2.0 */
/* Members lie as the psABI says. */
struct s { char a; int b; char c; long d; short e; };
BEGIN
{
	printf("%d %d %d %d %d %d\n", offsetof(struct s, a), offsetof(struct s, b),
	    offsetof(struct s, c), offsetof(struct s, d), offsetof(struct s, e), sizeof (struct s));
	exit(0);
}
/* output:
0 4 8 16 24 32

*/
