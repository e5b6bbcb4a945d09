/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: discard() after data recording. */
BEGIN
{
	this->s = speculation();
	printf("recorded\n");
	discard(this->s);
	exit(0);
}
/* output:
recorded

*/
