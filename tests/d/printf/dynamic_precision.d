/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 30: .* takes the precision from the arguments. */
BEGIN
{
	printf("[%.*s] [%*.*s]\n", 2, "abc", 5, 1, "abc");
	exit(0);
}
/* output:
[ab] [    a]

*/
