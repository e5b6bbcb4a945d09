/* SPDX-License-Identifier: Apache-2.0 */
/* A variable that is first assigned in a branch has its type. */
BEGIN
{
	if (0) {
		this->s = "never";
		n = 5ll;
	}
	printf("%d %d\n", sizeof (this->s), n);
	exit(0);
}
/* output:
256 0

*/
