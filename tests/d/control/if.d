/* SPDX-License-Identifier: Apache-2.0 */
/* A statement behind if runs when the condition is not 0. */
BEGIN
{
	if (1)
		printf("yes\n");
	if (0)
		printf("no\n");
	exit(0);
}
/* output:
yes

*/
