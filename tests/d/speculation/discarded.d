/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: what was discarded is never printed. */
BEGIN
{
	this->s = speculation();
	speculate(this->s);
	printf("speculated\n");
}
BEGIN
{
	discard(this->s);
	printf("done\n");
	exit(0);
}
/* output:
done

*/
