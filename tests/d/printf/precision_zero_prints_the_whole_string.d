/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 30: a precision of 0 is none. */
BEGIN
{
	printf("[%.0s]\n", "abc");
	exit(0);
}
/* output:
[abc]

*/
