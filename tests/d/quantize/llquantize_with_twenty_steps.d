/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: with 20 steps the buckets from 10 on are 5 wide. */
BEGIN
{
	@ = llquantize(37, 10, 0, 3, 20);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              30 |                                         0        
              35 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
              40 |                                         0        

*/
