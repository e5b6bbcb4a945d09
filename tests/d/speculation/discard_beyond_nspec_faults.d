/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: so is a discard. */
/* flags: -q -xnspec=8 */
/* stderr: illegal operation */
BEGIN
{
	discard(1024);
	printf("wrong\n");
}
BEGIN
{
	exit(0);
}
/* output:

*/
