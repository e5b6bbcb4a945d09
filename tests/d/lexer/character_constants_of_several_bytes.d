/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 16: several bytes make one number, the first byte the most significant. */
BEGIN
{
	printf("%x %x\n", 'ab', 'abcd');
	exit(0);
}
/* output:
6162 61626364

*/
