/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 22: a start beyond the end gives the empty string; a length beyond it the rest. */
BEGIN
{
	s = "foobarbaz";
	printf("[%s] [%s] [%s]\n", substr(s, 9), substr(s, 400), substr(s, 6, 400));
	exit(0);
}
/* output:
[] [] [baz]

*/
