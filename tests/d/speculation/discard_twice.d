/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: a second discard is harmless. */
BEGIN
{
	this->s = speculation();
	discard(this->s);
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
