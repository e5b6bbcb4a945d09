/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 39: linear buckets. */
BEGIN
{
	@ = lquantize(25, 0, 100, 10);
	@ = lquantize(29, 0, 100, 10);
	@ = lquantize(40, 0, 100, 10);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              10 |                                         0        
              20 |@@@@@@@@@@@@@@@@@@@@@@@@@@@              2        
              30 |                                         0        
              40 |@@@@@@@@@@@@@                            1        
              50 |                                         0        

*/
