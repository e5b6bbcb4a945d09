/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison of strings decides. */
BEGIN
{
	s = "b";
	if (s == "a") {
		printf("a\n");
	} else if (s == "b") {
		printf("b\n");
	}
	exit(0);
}
/* output:
b

*/
