/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 28: %wc is a character. */
BEGIN
{
	printf("%wc%wc\n", 'w', 105);
	exit(0);
}
/* output:
wi

*/
