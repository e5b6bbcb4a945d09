/* SPDX-License-Identifier: Apache-2.0 */
/* Exactly one branch runs. */
BEGIN
{
	x = 3;
	if (x == 3) {
		printf("three\n");
	} else {
		printf("other\n");
	}
	if (x != 3)
		printf("other\n");
	else
		printf("three\n");
	exit(0);
}
/* output:
three
three

*/
