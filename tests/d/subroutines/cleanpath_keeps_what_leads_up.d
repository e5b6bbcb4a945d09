/* SPDX-License-Identifier: Apache-2.0 */
/* What leads out of a relative path stays. */
BEGIN
{
	printf("[%s] [%s] [%s] ", cleanpath("../.."), cleanpath("a/../.."), cleanpath("a/.."));
	printf("[%s] [%s] [%s]\n", cleanpath(""), cleanpath("../../a/../b"), cleanpath("/../.."));
	exit(0);
}
/* output:
[../..] [..] [.] [] [../../b] [/]

*/
