/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: $0 is the name of the script. */
BEGIN
{
	printf("%s\n", basename($$0));
	exit(0);
}
/* output:
script_name.d

*/
