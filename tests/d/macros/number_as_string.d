/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: $$1 is the text. */
/* arguments: 5 */
BEGIN
{
	printf("%d %s\n", $1, $$1);
	exit(0);
}
/* output:
5 5

*/
