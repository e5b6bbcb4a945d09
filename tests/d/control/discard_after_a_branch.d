/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: discard() may follow data recording in a branch. */
BEGIN
{
	this->s = speculation();
	if (this->s) {
		printf("have one\n");
	}
	discard(this->s);
	exit(0);
}
/* output:
have one

*/
