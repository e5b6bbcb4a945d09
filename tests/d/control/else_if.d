/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of else if. */
BEGIN
{
	x = 2;
	if (x == 1) {
		printf("one\n");
	} else if (x == 2) {
		printf("two\n");
	} else {
		printf("many\n");
	}
	exit(0);
}
/* output:
two

*/
